// When may code be reused? When it would be written again, word for word. Sizes are names in the text,
// and so can the constants be that come of sizes (a mean's): their values go with a launch. What is left
// is the key: two calls whose texts are equal share one compiled program, whatever their sizes.
//
//   softmax of [4,100], of [7,200]       =>  one compilation: .. k < size0; .. / c0
//   softmax of [200,200]                 =>  another one: two sizes are one number there
//
// Decisions are part of the text (a layout that covers 256 does not cover 300): no guard can be
// forgotten. Left out: to know that without writing the text.
#pragma once

#include "lessons/small/13_memory.h"

namespace small {

// Names for a kernel's sizes and constants, whose values become the launch's.
inline std::string opened(const std::string& text, Launch& launch) {
  static const std::regex known("  const long long n\\d+ = \\d+;\n"),
      either("\\bn(\\d+)\\b|tc_from_bits\\((\\d+)u\\)");
  const std::string body = std::regex_replace(text, known, "");
  std::map<std::string, std::string> names;
  std::string result, heads;
  auto copied = body.begin();
  for (std::sregex_iterator at(body.begin(), body.end(), either), end; at != end; ++at) {
    const bool is_size = (*at)[1].matched;
    std::string& name = names[at->str()];
    if (name.empty() && is_size && launch.sizes.size() < 16) {
      name = str("size", launch.sizes.size());
      heads += str("  const long long ", name, " = a.n[", launch.sizes.size(), "];\n");
      launch.sizes.push_back(std::stoll((*at)[1]));
    } else if (name.empty() && !is_size && launch.constants.size() < 16) {
      name = str("c", launch.constants.size());
      heads += str("  const float ", name, " = a.c[", launch.constants.size(), "];\n");
      launch.constants.push_back(
          std::bit_cast<float>(static_cast<unsigned>(std::stoul((*at)[2]))));
    } else if (name.empty()) {
      name = is_size ? (*at)[1].str() : at->str();
    }
    result.append(copied, at->prefix().second) += name;
    copied = (*at)[0].second;
  }
  result.append(copied, body.end());
  return result.insert(result.find('\n') + 1, heads);
}

// All kernels of a plan; what stands before them stays.
inline Code opened(Code code) {
  const std::string start = "extern \"C\" ";
  size_t at = code.text.find(start);
  std::string text = code.text.substr(0, at);
  for (Launch& launch : code.launches) {
    const size_t next = code.text.find(start, at + 1);
    text += opened(code.text.substr(at, next - at), launch);
    at = next;
  }
  return {text, code.launches};
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
      plan.code = opened(plan.code);
      Run& run = programs_[plan.code.text];
      if (!run) run = (cuda_ ? compile_cuda : compile_cpp)(plan.code.text);
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
