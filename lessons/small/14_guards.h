// When may code be reused? When it would be written again, word for word. Sizes are names in the text,
// and so can constants be (a mean's comes from a size): their values go with a launch. What is left
// is the key: two calls whose texts are equal share one compiled program, whatever their sizes.
//
//   softmax of [4,100], of [7,200]       =>  one compilation: halves<0>(size0, ..
//   softmax of [200,200]                 =>  another one: two sizes are one number there
//
// Decisions are part of the text (a layout that covers 256 does not cover 300): no guard can be
// forgotten. Left out: knowing that without writing the text.
#pragma once

#include "lessons/small/13_memory.h"

namespace small {

// The kernel with names for its sizes and constants, whose values become the launch's.
inline Launch opened(Launch launch) {
  static const std::regex known("  const long long n\\d+ = \\d+;\n"),
      either("\\bn(\\d+)\\b|tc_from_bits\\((\\d+)u\\)");
  const std::string body = std::regex_replace(launch.text, known, "");
  std::map<std::string, std::string> names;
  std::string text, heads;
  auto copied = body.begin();
  for (std::sregex_iterator at(body.begin(), body.end(), either), end; at != end; ++at) {
    const bool is_size = (*at)[1].matched;
    const size_t k = is_size ? launch.sizes.size() : launch.constants.size();
    std::string& name = names[at->str()];
    if (name.empty() && k == 16) name = is_size ? (*at)[1].str() : at->str();
    if (name.empty()) {
      name = str(is_size ? "size" : "c", k);
      heads += str(is_size ? "  const long long " : "  const float ", name,
                   is_size ? " = a.n[" : " = a.c[", k, "];\n");
      if (is_size)
        launch.sizes.push_back(std::stoll((*at)[1]));
      else
        launch.constants.push_back(
            std::bit_cast<float>(static_cast<unsigned>(std::stoul((*at)[2]))));
    }
    text.append(copied, at->prefix().second) += name;
    copied = (*at)[0].second;
  }
  launch.text = text.append(copied, body.end()).insert(text.find('\n') + 1, heads);
  return launch;
}

// A function that compiles itself for the shapes that it is called with.
class Compiled {
 public:
  using Planner = std::function<Plan(const std::vector<Shape>&)>;
  Compiled(Planner planner, bool cuda) : planner_(std::move(planner)), cuda_(cuda) {}

  std::vector<Array> operator()(const std::vector<Shape>& shapes,
                                const std::vector<Array>& inputs) {
    auto known = calls_.find(shapes);
    if (known == calls_.end()) {
      Plan plan = planner_(shapes);
      for (Launch& launch : plan.launches) launch = opened(launch);
      Run& run = programs_[text_of(plan)];
      if (!run) run = (cuda_ ? compile_cuda : compile_cpp)(text_of(plan));
      known = calls_.emplace(shapes, Executable(with_arena(plan), cuda_, run)).first;
    }
    return known->second(inputs);
  }
  size_t compilations() const { return programs_.size(); }

 private:
  Planner planner_;
  bool cuda_;
  std::map<std::vector<Shape>, Executable> calls_;
  std::map<std::string, Run> programs_;  // by their text
};

}  // namespace small
