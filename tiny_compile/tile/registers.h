// A pass, one of a thread's registers after the other.
#pragma once

#include <optional>
#include <vector>

#include "tiny_compile/tile/elements.h"

namespace tiny_compile {

// What is done for each of a thread's registers.
struct Work {
  Body body;
  bool hastens = false;          // by shortcuts
  std::optional<Share> share{};  // whose registers it goes over; none: those of the pass
  Body after{};                  // once a piece
  int highest = -1;              // where it hastens: no exponent in it is above that
  bool is_costly = false;        // its text is long, and each element takes long
};

// One work after the other for all registers; where one hastens, for some at a time, and where all
// threads wait for each other (Work::after), for one of `pieces`. A loop even over one register: what
// it names is named in other passes too.
Body over_registers(const Lowering& l, const Share& k, std::vector<Work> works, int pieces = 1);

}  // namespace tiny_compile
