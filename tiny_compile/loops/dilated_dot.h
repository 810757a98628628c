// Dots one of whose operands is known to be 0 but where residues of its rows and its depth agree.
#pragma once

#include <optional>

#include "tiny_compile/loops/dot_axes.h"

namespace tiny_compile {

// A row axis by its residue, and an axis of depth, if there is one, of which each residue of the
// row needs one residue, or none (-1).
struct Cut {
  int row = -1, depth = -1;
  int64_t by = 1;
  std::vector<int> needs;
};

struct Dilated {
  DotView view;  // lists: rows, depth
  int step = -1;
  int thin = -1, full = -1;  // scalars: the operand that is 0 in between, the other
  std::vector<Cut> cuts;
};

// Nothing where the loops do not say so, or too few products are with such zeros.
std::optional<Dilated> dilated(const Program& program, const Kernel& kernel);

int64_t phases(const std::vector<Cut>& cuts);             // combinations of the rows' residues
int64_t residues_of(const Dilated& dot, const Cut& cut);  // of the depth

// Numbers of the axis that leave this residue.
Expr extent_of(const Axis& axis, int64_t by, int64_t residue);

// Whether a scalar is at another place where the axis is.
bool uses(const Kernel& kernel, int scalar, int axis);

}  // namespace tiny_compile
