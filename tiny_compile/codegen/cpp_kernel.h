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
};

}  // namespace tiny_compile
