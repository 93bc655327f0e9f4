// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/comm.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pipeline.hpp>

#include "gpt.hpp"
#include "layers.hpp"

namespace tool {

heddle::LayerProfile profile_transformer(const heddle::Communicator& comm,
                                         const LayerSizes& sizes) {
  using Stage = examples::GptStage<float>;
  const auto config_for = [&](std::int64_t sequences) {
    return examples::GptConfig{.layers = sizes.layers,
                               .width = sizes.width,
                               .heads = sizes.heads,
                               .context = sizes.context,
                               .sequences = static_cast<int>(sequences)};
  };
  examples::validate(config_for(sizes.samples));
  heddle::DeviceMesh mesh(comm.get(), {{"rank", comm.size()}});
  const heddle::Stages<Stage> model(sizes.layers, [&](const heddle::StagePlace& place) {
    return Stage(config_for(place.samples.size()), place.layers.first, place.layers.last);
  });
  std::vector<std::int64_t> samples{1};
  if (sizes.samples > 1) samples.push_back(sizes.samples);
  heddle::LayerProfile profile = heddle::profile_layers(
      model, mesh,
      {.samples = samples,
       .model = heddle::text("gpt of ", sizes.layers, " layers"),
       .device = sizes.device},
      [&](Stage& stage, std::int64_t sequences) {
        const auto each = static_cast<std::size_t>(sizes.context) + 1;
        const std::vector<std::uint8_t> tokens(static_cast<std::size_t>(sequences) * each, 'e');
        stage.begin_step(tokens, 1);
      });
  examples::complete_layers<float>(profile.layers, config_for(1));
  return profile;
}

}  // namespace tool
