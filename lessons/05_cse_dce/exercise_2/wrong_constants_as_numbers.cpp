// fails: constants are compared bit by bit
#include "exercise.h"

namespace exercise {

bool is_one_value(const Node& lhs, const Node& rhs) {
  return lhs.op != Op::input && lhs.op == rhs.op && lhs.inputs == rhs.inputs &&
         lhs.type == rhs.type && lhs.attrs == rhs.attrs &&
         lhs.value.as_double() == rhs.value.as_double();
}

}  // namespace exercise
