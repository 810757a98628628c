// How does a source say a thing once? A kernel that differs from an earlier one in names alone (the
// layers of a network) is that function again, called with other buffers; its text is neither
// written nor compiled twice:
//
//   // gpt2.cpp:57
//   // also k_matmul_326, k_matmul_426
//   extern "C" void k_matmul_222(void* const* buffers, ...
#include "tiny_compile/codegen/functions.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "tiny_compile/codegen/scalar.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostNamed = 8;  // users in a comment

// "// also k_exp_7, k_exp_9\n"
std::string also(const std::vector<std::string>& users) {
  if (users.size() < 2) return "";
  const size_t others = users.size() - 1, named = std::min(others, kMostNamed);
  const std::string more = others > named ? str(", ... (", others, " kernels)") : "";
  return str("// also ", join(std::span(users).subspan(1, named), ", "), more, "\n");
}

}  // namespace

void fail_without_tile(const Kernel& kernel) {
  fail("kernel ", kernel.name, " comes without its tile, and nothing else writes schedule ",
       name_of(schedule_of(kernel).strategy));
}

std::string function_name(const Kernel& kernel) { return c_name("k", kernel.name); }

// Kernels a.b and a_b are two functions.
std::string Functions::unused_name(const std::string& wanted) {
  std::string name = wanted;
  for (int n = 2; !names_.insert(name).second; n++) name = str(wanted, "_", n);
  return name;
}

KernelEntry Functions::add(const LoneKernel& lone, const Kernel& kernel,
                           const std::string& suffix, int kind, const std::optional<Tile>& tile,
                           const Write& write) {
  Key key{key_of(lone), tile, kind};
  if (tile) key.tile->kernel.name.clear(), key.tile->kernel.again = 0;  // as in key_of
  const auto [known, is_new] = known_.insert({std::move(key), functions_.size()});
  const std::string name = function_name(kernel) + suffix;
  if (is_new) {
    const std::string function = unused_name(name);
    functions_.push_back(
        {comment_of(kernel), {function}, write(lone, function), can_fail(lone.kernel())});
  } else {
    functions_[known->second].users.push_back(name);
  }
  KernelEntry entry = functions_[known->second].written.entry;
  for (int& buffer : entry.buffers) buffer = lone.buffers[buffer];
  return entry;
}

void Functions::add_comment(const std::string& text) { functions_.push_back({text, {}, {}}); }

Calls Functions::calls() const {
  Calls all;
  for (const Function& f : functions_) all.add(f.written.calls);
  return all;
}

std::vector<std::string> Functions::texts(std::optional<bool> failing) const {
  std::vector<std::string> texts;
  for (const Function& f : functions_) {
    if (!failing || f.failing == *failing)
      texts.push_back(str("\n", f.comment, also(f.users), f.written.text));
  }
  return texts;
}

std::vector<std::string> units_of(const std::vector<std::string>& functions, size_t bytes) {
  size_t total = 0, done = 0;
  for (const std::string& function : functions) total += function.size();
  std::vector<std::string> units(std::max<size_t>(total / bytes, 1));
  for (const std::string& function : functions) {
    units[done * units.size() / std::max<size_t>(total, 1)] += function;
    done += function.size();
  }
  std::erase(units, "");
  if (units.empty()) units.emplace_back();  // of no kernels
  return units;
}

std::string joined_units(const std::vector<std::string>& units) {
  if (units.size() < 2) return join(units, "");
  std::string text;
  for (size_t u = 0; u < units.size(); u++)
    text += str("\n#if !defined(TC_UNIT) || TC_UNIT == ", u, units[u], "#endif\n");
  return text;
}

}  // namespace tiny_compile
