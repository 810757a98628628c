// fails: two draws are two values
#include "exercise.h"

namespace exercise {

bool is_one_value(const Node& lhs, const Node& rhs) {
  return lhs.op != Op::input && lhs.op == rhs.op && lhs.inputs == rhs.inputs &&
         lhs.type == rhs.type && lhs.value == rhs.value;
}

}  // namespace exercise
