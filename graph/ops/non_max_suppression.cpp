#include <algorithm>

#include "graph/ops/data_shape.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer_nms(const InferContext& ctx) {
  const TensorType &boxes = ctx.input(0), &scores = ctx.input(1);
  if (Result<void> ok = check_rank(boxes, 3, 3, "input boxes"); !ok) return ok.failure();
  if (Result<void> ok = check_rank(scores, 3, 3, "input scores"); !ok) return ok.failure();
  if (Result<void> ok = check_shape(boxes, {boxes.shape[0], boxes.shape[1], Expr(4)}, "input boxes"); !ok)
    return ok.failure();
  if (Result<void> ok = check_shape(scores, {boxes.shape[0], scores.shape[1], boxes.shape[1]}, "input scores"); !ok)
    return ok.failure();
  const auto known_types = types_by_reference(ctx);
  if (!known_types) return known_types.failure();
  if (*known_types) return **known_types;
  return std::vector<TensorType>{{kInt64, {ctx.data_dim(0, 0), Expr(3)}, {}}};
}

struct Box {
  double low[2], high[2];
  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

/// Intersection over union of two boxes; 0 when a box is empty.
double overlap(const Box& a, const Box& b) {
  double common = 1;
  for (int axis = 0; axis < 2; ++axis) {
    const double length = std::min(a.high[axis], b.high[axis]) - std::max(a.low[axis], b.low[axis]);
    if (length <= 0) return 0;
    common *= length;
  }
  const double all = a.area() + b.area() - common;
  return a.area() > 0 && b.area() > 0 && all > 0 ? common / all : 0;
}

Result<void> reference_nms(ReferenceContext& ctx) {
  const RefTensor &boxes = ctx.input(0), &scores = ctx.input(1);
  const int64_t batches = boxes.shape[0], count = boxes.shape[1], classes = scores.shape[1];
  const auto scalar = [&](int input, double fallback) {
    return ctx.has(input) && ctx.input(input).num_elements() > 0 ? ctx.input(input).get(0) : fallback;
  };
  const auto most = static_cast<int64_t>(scalar(2, 0));
  const double limit = scalar(3, 0);
  const bool has_threshold = ctx.has(4) && ctx.input(4).num_elements() > 0,
             centred = ctx.node.attrs.get_int("center_point_box", 0) != 0;
  const auto box_at = [&](int64_t batch, int64_t k) {
    const double* b = boxes.f.data() + (batch * count + k) * 4;
    Box box;
    for (int axis = 0; axis < 2; ++axis) {
      const double one = centred ? b[axis] - b[axis + 2] / 2 : b[axis],
                   other = centred ? b[axis] + b[axis + 2] / 2 : b[axis + 2];
      box.low[axis] = std::min(one, other), box.high[axis] = std::max(one, other);
    }
    return box;
  };
  std::vector<int64_t> result;
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t cls = 0; cls < classes; ++cls) {
      const double* score = scores.f.data() + (batch * classes + cls) * count;
      std::vector<int64_t> order, kept;
      for (int64_t k = 0; k < count; ++k)
        if (!has_threshold || score[k] > scalar(4, 0)) order.push_back(k);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score[a] > score[b]; });
      for (int64_t k : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        const Box box = box_at(batch, k);
        if (std::any_of(kept.begin(), kept.end(),
                        [&](int64_t other) { return overlap(box, box_at(batch, other)) > limit; }))
          continue;
        kept.push_back(k);
        result.insert(result.end(), {batch, cls, k});
      }
    }
  make_output(ctx, kInt64, {static_cast<int64_t>(result.size() / 3), 3}).i = std::move(result);
  return {};
}

}  // namespace

OpDef non_max_suppression() {
  const auto boxes = given(kFloat32, {1, 4, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11});
  const auto scores = given(kFloat32, {1, 1, 4}, {0.9, 0.75, 0.6, 0.95});
  return OpDef{
      .name = "NonMaxSuppression",
      .since = 10,
      .doc =
          "The best boxes of each class, leaving out those that overlap a better one by more than a threshold. Only "
          "for constants.",
      .inputs = {{.name = "boxes", .types = TypeSet::kFloat},
                 {.name = "scores", .types = TypeSet::kFloat, .same_type_as = "boxes"},
                 {.name = "max_output_boxes_per_class", .types = TypeSet::kInt64, .optional = true},
                 {.name = "iou_threshold", .types = TypeSet::kFloat, .optional = true},
                 {.name = "score_threshold", .types = TypeSet::kFloat, .optional = true}},
      .attrs = {{.name = "center_point_box", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .fusion = FusionKind::kOpaque,
      .infer = infer_nms,
      .supports = refuse_data_shape,
      .decompose = outputs_by_reference,
      .reference = reference_nms,
      .samples =
          {
              {.name = "boxes",
               .inputs = {boxes, scores, known_ints({3}), known_scalar(kFloat32, 0.5), known_scalar(kFloat32, 0)}},
              {.name = "three_corners", .inputs = {f32({1, 4, 3}), scores}, .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
