// The functions of a source in the making: one for all kernels that do the same.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tiny_compile/codegen/calls.h"
#include "tiny_compile/codegen/source.h"
#include "tiny_compile/loops/kernel_key.h"
#include "tiny_compile/tile/tiles.h"

namespace tiny_compile {

class Functions {
 public:
  struct Written {
    KernelEntry entry;  // buffers are the lone kernel's
    std::string text;
    Calls calls{};  // of the text
  };
  using Write = std::function<Written(const LoneKernel& lone, const std::string& function)>;

  // The entry of `kernel`, for which another stands, whose function `write` makes unless an equal
  // kernel has one: of one kind, a number, with an equal tile over buffers of its own. The function is
  // "k_" + the kernel's name + `suffix`.
  KernelEntry add(const LoneKernel& lone, const Kernel& kernel, const std::string& suffix,
                  int kind, const std::optional<Tile>& tile, const Write& write);
  void add_comment(const std::string& text);  // instead of a function

  // Of each, comments before it; or of those alone whose kernels can fail, or cannot.
  std::vector<std::string> texts(std::optional<bool> failing = {}) const;
  Calls calls() const;  // of all of them

 private:
  struct Function {
    std::string comment;
    std::vector<std::string> users;  // the kernels it serves; it is named after the first
    Written written;
    bool failing = false;
  };
  struct Key {
    KernelKey kernel;
    std::optional<Tile> tile;
    int kind = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return key.kernel.hash; }
  };
  std::string unused_name(const std::string& wanted);

  std::vector<Function> functions_;
  std::unordered_map<Key, size_t, KeyHash> known_;  // which of them
  std::set<std::string> names_;
};

// Functions' texts for one compiler each, of about equal lengths, a unit for every `bytes` of them; and all
// of these, each between an #if and an #endif where there are several.
std::vector<std::string> units_of(const std::vector<std::string>& functions, size_t bytes);
std::string joined_units(const std::vector<std::string>& units);

// Of a kernel that comes without its tile, and is of no family that has none.
[[noreturn]] void fail_without_tile(const Kernel& kernel);

// "k_exp_1": the kernel's name as an identifier.
std::string function_name(const Kernel& kernel);

}  // namespace tiny_compile
