// The text of one kernel under construction.
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
  // What is written behind a scalar's definition, where it holds as long: nothing unless changed.
  std::function<void(int scalar)> behind_definition = [](int) {};
  // The scalars that steps evaluate, operands first.
  std::vector<int> needed(const std::vector<const Step*>& steps) const;
  // The axes that a scalar is computed within: bit a is axes[a] of the kernel.
  uint64_t axes_of(int scalar) const { return axes_[scalar]; }

 private:
  std::vector<uint64_t> axes_;
};

}  // namespace tiny_compile
