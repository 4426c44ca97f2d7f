/// A model small enough to write by hand, with everything that descriptions can say: y[i] = x[i] * scale + bias[i % 4],
/// where x has a symbolic first dimension; scale and bias are weights; a second output has a derived dimension.
#pragma once

#include "runtime/export/model_image.h"

namespace tensmith::test {

/// Its "generated code", by the names that the description uses.
const void* scale_symbol(const std::string& name);
/// The weights: scale, then four values of bias.
extern const float kScaleWeights[5];
/// Inputs x:f32[n,4]; outputs y:f32[n,4] and twice:i64[2n]; n from 1 to 100. Codes: 1 "x holds a NaN".
ModelDescription scale_description();

}  // namespace tensmith::test
