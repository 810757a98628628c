// The text of one C++ kernel under construction: loops, scopes and the scalars defined in them.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/codegen/scalar.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Indented lines.
class Text {
 public:
  void line(const std::string& text);
  void open(const std::string& text);  // "for (...)" -> "for (...) {", deeper from here
  void indent() { depth_++; }          // as open does, whose line is written already
  void close(const std::string& suffix = "");
  const std::string& str() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

// What is known at a place in the loops: which axes have a value (bit a: axes[a] of the kernel), and
// whether the row's registers do, the results of its reductions. Or what a scalar needs to know.
struct LoopScope {
  uint64_t axes = 0;
  bool registers = false;
  bool holds(const LoopScope& needs) const {
    return (needs.axes & ~axes) == 0 && (registers || !needs.registers);
  }
};

uint64_t row_mask(const Kernel& kernel);  // bits 0 .. rows - 1
// Inside all loops of a step: its rows and these inner axes have values, and registers.
LoopScope element_scope(const Kernel& kernel, const std::vector<int>& inner);

// Defines scalars in the outermost loop that allows it. Scopes nest: what the function or the
// row defined stays visible; what a loop of a step defined does not.
class KernelText {
 public:
  KernelText(const Program& program, const Kernel& kernel, bool cuda = false);
  KernelText(const KernelText&) = delete;

  Text out;
  Calls calls;  // of the text
  ScalarWriter scalars;
  const Program& program;
  const Kernel& kernel;
  const std::vector<Expr> sizes;      // symbolic ones, which a function is given
  std::string integer = "long long";  // the type of indices

  void begin_function(const std::string& function);
  std::string own() const;  // "buffers[3]": the address of the thread's own memory
  // const <integer> name = value;
  void declare(const std::string& name, const std::string& value);
  void declare(const std::string& name, const Expr& value) { declare(name, c_text(value)); }
  // Declares axes from an element's flat number, the innermost first: j1 = e % 12; j0 = e / 12;
  // the innermost by another name, if one is given ("e", where a pack starts).
  void unpack(const std::vector<int>& axes, Expr number, const std::string& innermost = "");
  void unpack_rows(const std::string& number);  // all rows, from a variable
  void unpack_rows(int count, Expr number);     // the first `count`; none of -1
  void unpack_inner(const Step& step, const std::string& number);
  // Defines those of `ids` whose needs the scope holds, in order, but what is defined already. A loop's
  // end forgets what the loop defined: pass a copy there.
  void define(const std::vector<int>& ids, const LoopScope& scope, std::vector<bool>& defined);
  // What is written behind a scalar's definition, where it holds as long: nothing unless changed.
  std::function<void(int scalar)> behind_definition = [](int) {};
  // The scalars that steps evaluate, operands first.
  std::vector<int> needed(const std::vector<const Step*>& steps) const;
  LoopScope needs(int scalar) const { return needs_[scalar]; }

 private:
  std::vector<LoopScope> needs_;
};

}  // namespace tiny_compile
