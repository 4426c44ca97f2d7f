/// Distance of a result from the exact value in units of the last place.
#pragma once

namespace tensmith {

/// |got - exact| in ulp of `exact` in f32 (f64). Infinite when one is NaN and the other not, or when the sign of a zero
/// or an infinity is wrong. Exact values beyond the largest number count as 2^128 (2^1024), infinity as well.
double ulp_error(float got, double exact);
double ulp_error(double got, long double exact);

}  // namespace tensmith
