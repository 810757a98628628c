// Reading what a kernel's steps compute: values, and places in buffers.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tiny_compile/loops/parse_schedule.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The part of parse_program's parser that reads less than a line, with what is declared so far.
class ValueParser : protected ScheduleParser {
 protected:
  using Names = std::map<std::string, int, std::less<>>;  // the numbers of buffers or kernels

  // The index, the scalars that are at0, at1, ... in it, and their limits.
  struct Place {
    Expr index;
    std::vector<int> operands;
    std::vector<Expr> limits;
  };

  explicit ValueParser(std::string_view text) : ScheduleParser(text) {}
  virtual ~ValueParser() = default;

  // What a name in an index stands for; `limits` are of at0, at1, ...
  virtual Expr symbol(std::string_view name, size_t position,
                      const std::vector<Expr>& limits) const;

  int look_up(const Names& names, const char* what);
  int buffer();
  int64_t size();  // a number
  Expr extent();   // a number or symbolic: n*3
  DType dtype();
  Place place();
  int value();                                                   // the scalar's number
  static std::optional<int> register_of(std::string_view word);  // "r12" => 12

  Program program_;
  DeclaredSizes sizes_;
  Names buffers_;
  Kernel* kernel_ = nullptr;       // the one being read
  ScalarTable* table_ = nullptr;   // of it
  std::map<int64_t, int> values_;  // $N -> its scalar

 private:
  Expr size_symbol(std::string_view name, size_t position) const;
  int value_here();
  Literal literal(DType dtype);
  int load();
  int place_scalar(ScalarKind kind, DType dtype, int source = -1);
  int philox();
  int register_value(int step, size_t start);
  int apply(Op op);
  int depth_ = 0;
};

}  // namespace tiny_compile
