// The text of one C++ kernel under construction: loops, scopes and the scalars defined in them.
#pragma once

#include <map>
#include <set>
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

// A set of axes, and whether registers of the row are involved.
struct LoopScope {
  uint64_t axes = 0;
  bool registers = false;
  bool holds(const LoopScope& needs) const {
    return (needs.axes & ~axes) == 0 && (registers || !needs.registers);
  }
};

uint64_t row_mask(const Kernel& kernel);  // the set of its row axes
// An element of a step with these inner axes.
LoopScope element_scope(const Kernel& kernel, const std::vector<int>& inner);

// Defines scalars in the outermost loop that allows it. Scopes nest: what the function or the
// row defined stays visible; what a loop of a step defined does not.
class KernelText {
 public:
  KernelText(const Program& program, const Kernel& kernel);

  Text out;
  ScalarWriter scalars;
  const Program& program;
  const Kernel& kernel;
  std::string integer = "long long";                  // the type of indices
  std::function<std::string(int scalar)> kept_place;  // "keep_4[j0*8 + j1]"

  void begin_function(const std::string& function);
  void declare(const std::string& name, const std::string& value);  // const int name = value;
  // Axes from an element's number, in row-major order: const long long j1 = e % 12; j0 = e / 12;
  // the last of them by another name, if one is given.
  void unpack(const std::vector<int>& axes, Expr number, const std::string& last = "");
  void unpack_rows(const std::string& unit);  // i0, i1, ... from a flat row number
  void unpack_rows(int count, Expr number);   // the first `count` of them
  void unpack_inner(const Step& step, const std::string& element);  // j0, j1, ... from a number
  // Defines whatever of `ids` the scope allows and is not defined yet.
  void define(const std::vector<int>& ids, const LoopScope& scope, std::vector<bool>& defined);
  std::vector<int> needed(
      const std::vector<const Step*>& steps) const;  // without what kept values hide
  LoopScope needs(int scalar) const { return needs_[scalar]; }
  std::vector<bool> below(
      int scalar) const;  // of each scalar: whether it, or of what it is made

  // Values that several steps over the same inner loops use, in arrays over those loops:
  // planned by choose_kept, stored by keep() in the first step that computes them, read by
  // define() after mark_kept().
  std::vector<int> pass_of;  // of each step; those of one pass share values without keeping
  std::map<int, std::vector<int>> planned;  // scalar -> the inner axes
  void choose_kept();                       // costly values, up to 256 kB each
  void choose_kept(const std::function<bool(const Scalar&)>& worth, int64_t most_bytes);
  // Whether a value is all that anyone wants of the loads below it, and needs no register of the
  // row: keeping it takes the place of keeping them.
  bool hides_its_loads(int scalar) const;
  bool is_kept(int scalar) const { return kept_.count(scalar) > 0; }
  void declare_kept();
  void keep(const std::vector<int>& ids);
  void mark_kept(const std::vector<int>& ids);
  // Whether the step at hand fills keep_<scalar>[..].
  bool keeps(int scalar) const { return planned.count(scalar) && !kept_.count(scalar); }

 private:
  std::vector<LoopScope> needs_;
  std::set<int> kept_;
};

bool is_costly(const Scalar& scalar);  // transcendental or random

}  // namespace tiny_compile
