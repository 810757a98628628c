// fails: one call written on two lines is one value
#include "exercise.h"

namespace exercise {

bool is_one_value(const Node& lhs, const Node& rhs) {
  return lhs.op != Op::input && lhs.op == rhs.op && lhs.inputs == rhs.inputs &&
         lhs.type == rhs.type && lhs.attrs == rhs.attrs && lhs.value == rhs.value &&
         lhs.where == rhs.where;
}

}  // namespace exercise
