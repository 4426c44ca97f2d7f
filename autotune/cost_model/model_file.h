/// Models as text. Internal to autotune/cost_model/.
#pragma once

#include <memory>
#include <string>

#include "autotune/cost_model/cost_model.h"

namespace tensmith {

/// The model of that name from what its `save_text` gave. Errors: unknown-cost-model, cost-model-damaged.
Result<std::unique_ptr<CostModel>> parse_cost_model(const std::string& name, const std::string& text);

}  // namespace tensmith
