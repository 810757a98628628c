// What of a kernel decides who shares its rows and elements?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

inline constexpr int64_t kWord = 4;  // bytes

struct Outline {
  int64_t rows = 1, longest = 1;  // of its loops
  int64_t streams = 1;            // values of an element that are held at a time,
  int64_t words = 1;              // and the words that they take
  int reductions = 0;
  int64_t long_reductions = 0;  // of the longest loops
  int64_t loads = 0;            // of an element, whose places rows and loops name,
  int64_t bytes = 0;            // and what all of a row's are
  bool exponentials = false;    // it adds up some
  bool costly = false;          // something is computed of each element that takes long
  bool divides = false;
  bool chosen = false;  // data says which row of a table each is of
  bool held = false;    // elements are wanted again by a later pass,
  bool again = false;   // or when all of a chunk have been read
  bool writes = false;  // an element of each
  bool exact = true;    // its reductions are the same in any order,
  bool places = false;  // and some are of places
};

bool has_symbolic_sizes(const Kernel& kernel);  // rows or loops

// Of rows and loops whose sizes are numbers.
Outline outline_of(const Kernel& kernel);

// What lies along an axis: elements that one access can have of all of it, and the bytes of the
// largest that the loops read or write. Arrays that begin anywhere are gone over one by one; where more
// do not, all others in words of two, so that the former's elements are still near each other.
struct Along {
  int64_t vector = 1, bytes = 1;
  bool is_all = true;  // every array is gone over so
  int64_t extent = 1;  // of the axis
};

Along along(const Program& program, const Kernel& kernel, const Axis& axis);

// From here on all multiprocessors are busy; with rows that are held, from twice as many.
int64_t many_threads(const Machine& machine);

}  // namespace tiny_compile
