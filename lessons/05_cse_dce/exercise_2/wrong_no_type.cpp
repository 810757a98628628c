// fails: what differs in its type alone is two values
#include "exercise.h"

namespace exercise {

bool is_one_value(const Node& lhs, const Node& rhs) {
  return lhs.op != Op::input && lhs.op == rhs.op && lhs.inputs == rhs.inputs &&
         lhs.attrs == rhs.attrs && lhs.value == rhs.value;
}

}  // namespace exercise
