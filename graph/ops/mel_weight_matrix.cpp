#include <cmath>

#include "graph/ops/data_shape.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The numbers that the five inputs hold.
struct MelSizes {
  int64_t bins, dft_length, sample_rate;
  double low, high;
};

Result<MelSizes> check(const MelSizes& sizes) {
  if (sizes.bins < 1 || sizes.bins > (1 << 24))
    return refuse("bad-size") << "input num_mel_bins: expected 1 or more, got " << sizes.bins;
  if (sizes.dft_length < 1 || sizes.dft_length > (1 << 30))
    return refuse("bad-size") << "input dft_length: expected 1 or more, got " << sizes.dft_length;
  if (sizes.sample_rate < 1)
    return refuse("bad-size") << "input sample_rate: expected 1 or more, got " << sizes.sample_rate;
  const double top = static_cast<double>(sizes.dft_length / 2) * static_cast<double>(sizes.sample_rate) /
                     static_cast<double>(sizes.dft_length + 1);
  if (!(sizes.low >= 0 && sizes.high > sizes.low && sizes.high <= 1e9))
    return refuse("bad-size")
           << "inputs lower_edge_hertz, upper_edge_hertz: expected ascending frequencies up to about " << top
           << ", got " << sizes.low << " and " << sizes.high;
  return sizes;
}

Result<void> reference_mel(ReferenceContext& ctx) {
  const Result<MelSizes> checked =
      check({ctx.input(0).i[0], ctx.input(1).i[0], ctx.input(2).i[0], ctx.input(3).get(0), ctx.input(4).get(0)});
  if (!checked) return checked.failure();
  const MelSizes sizes = *checked;
  const int64_t rows = sizes.dft_length / 2 + 1;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = mel(sizes.low), step = (mel(sizes.high) - first) / static_cast<double>(sizes.bins + 2);
  // The spectrogram bin at each corner of the triangles.
  std::vector<int64_t> corner;
  for (int64_t k = 0; k < sizes.bins + 2; ++k) {
    const double hertz = 700 * (std::pow(10, (first + static_cast<double>(k) * step) / 2595) - 1);
    corner.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(sizes.dft_length + 1) * hertz / static_cast<double>(sizes.sample_rate))));
    if (corner.back() >= rows)
      return Failure{"bad-size", "input upper_edge_hertz: expected a frequency inside the spectrum, got " +
                                     std::to_string(sizes.high)};
  }
  RefTensor& y = make_output(ctx, ctx.node.attrs.get_dtype("output_datatype", kFloat32), {rows, sizes.bins});
  for (int64_t bin = 0; bin < sizes.bins; ++bin) {
    const int64_t low = corner[bin], centre = corner[bin + 1], high = corner[bin + 2];
    y.set(centre * sizes.bins + bin, 1);
    for (int64_t row = low; row < centre; ++row)
      y.set(row * sizes.bins + bin, static_cast<double>(row - low) / static_cast<double>(centre - low));
    for (int64_t row = centre; row < high; ++row)
      y.set(row * sizes.bins + bin, static_cast<double>(high - row) / static_cast<double>(high - centre));
  }
  return {};
}

Result<std::vector<TensorType>> infer_mel(const InferContext& ctx) {
  const auto known_types = types_by_reference(ctx);
  if (!known_types) return known_types.failure();
  if (*known_types) return **known_types;
  return std::vector<TensorType>{{ctx.node.attrs.get_dtype("output_datatype", kFloat32), data_shape(ctx, 0, 2), {}}};
}

}  // namespace

OpDef mel_weight_matrix() {
  const auto sample = [](const char* name, double bins, double length, double rate, double low, double high,
                         std::string error = {}) {
    return OpSample{.name = name,
                    .inputs = {known_scalar(kInt64, bins), known_scalar(kInt64, length), known_scalar(kInt64, rate),
                               known_scalar(kFloat32, low), known_scalar(kFloat32, high)},
                    .error_id = std::move(error)};
  };
  return OpDef{
      .name = "MelWeightMatrix",
      .since = 17,
      .doc =
          "The matrix that turns a linear spectrogram into mel bands: one triangle a column. Only for constant sizes.",
      .inputs = {{.name = "num_mel_bins", .types = TypeSet::kIndex},
                 {.name = "dft_length", .types = TypeSet::kIndex},
                 {.name = "sample_rate", .types = TypeSet::kIndex},
                 {.name = "lower_edge_hertz", .types = TypeSet::kFloat},
                 {.name = "upper_edge_hertz", .types = TypeSet::kFloat}},
      .attrs = {{.name = "output_datatype", .kind = AttrKind::kType, .default_value = kFloat32}},
      .fusion = FusionKind::kOpaque,
      .infer = infer_mel,
      .supports = refuse_data_shape,
      .decompose = outputs_by_reference,
      .reference = reference_mel,
      .samples = {sample("speech", 8, 16, 8192, 0, 4096), sample("fine", 3, 33, 16000, 20, 7600),
                  sample("edges", 8, 16, 8192, 100, 50, "bad-size"),
                  sample("beyond", 8, 16, 8192, 0, 40960, "bad-size")},
  };
}

}  // namespace tensmith::graph::ops
