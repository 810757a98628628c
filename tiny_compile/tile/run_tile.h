// What is known while a kernel is written whose blocks own runs of a result (tile/scatter_runs.cpp).
#pragma once

#include <functional>
#include <string>

#include "tiny_compile/loops/scatter_rules.h"
#include "tiny_compile/tile/point_values.h"

namespace tiny_compile {

// The run of a block, and the statements that name it. Numbers that a function computes are defined at the end of its
// `body`.
struct RunTile {
  RunTile(const Program& program, const Kernel& kernel);

  const RunShape shape;
  Points p;  // with a row axis, of one row where the kernel has none
  const Step &base, &scatter;
  const DType dtype;
  const int64_t most;  // targets of a block
  const int
      begins;  // i32, shared: where each target's updates begin in the block's list, and the last's end
  Expr thread;
  Expr first{}, last{};      // the block's points, in packs: first .. last - 1
  Expr lowest{}, targets{};  // the targets that they are of: lowest .. lowest + targets - 1
  int sorted = -1;           // i32, shared: the list; none where the updates are ordered
  int again = -1;  // bool: the run has results of earlier lists; none where there is one list

  // Names first, last, lowest and targets.
  Body name_run();

  int shared(const char* name, DType dtype, int64_t size);
  int own(const char* name, DType dtype, int64_t size = 1);
  int make(Body& body, Op op, DType dtype, std::vector<int> operands);
  int i32(Body& body, Op op, int a, int b) { return make(body, op, DType::i32, {a, b}); }
  int ask(Body& body, Op op, int a, int b) { return make(body, op, DType::boolean, {a, b}); }
  int number(int64_t value, DType dtype = DType::i32);
  int data(Body& body, const Expr& value, DType dtype = DType::i32);
  int read(Body& body, int array, const Expr& index = 0, const Expr& lane_xor = 0);
  // Names an integer, by a name that neither axes nor sizes have.
  Expr name(Body& body, const char* what, const Expr& extent, const Expr& value);
  Expr chosen(Body& body, const char* what, int64_t extent, int value);
  Expr index(const char* what, int64_t extent) const;

  // A scalar of an update, whatever is known there.
  int scalar_at(Body& body, int scalar, const Expr& update);
  // Whether a place is none, and what raises the error.
  int is_stray(Body& body, int place);
  Statement tell(int stray, int place);
  // Of ordered updates: that of this number in the order.
  Expr ordered(Body& body, const Expr& number);
};

// Where nobody has sorted the updates: finds them and puts them in lists, and does `over_run` for each list.
Body over_found(RunTile& run, const std::function<Body()>& over_run);
// Where an earlier kernel has ordered them: the block's list.
Body ordered_list(RunTile& run);

}  // namespace tiny_compile
