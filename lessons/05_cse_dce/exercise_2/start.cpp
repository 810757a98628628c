#include "exercise.h"

namespace exercise {

bool is_one_value(const Node& lhs, const Node& rhs) {
  // TODO: two draws, two slices, two constants: op and operands do not tell them apart.
  return lhs.op == rhs.op && lhs.inputs == rhs.inputs;
}

}  // namespace exercise
