// fails: two inputs are never one
#include "exercise.h"

namespace exercise {

bool is_one_value(const Node& lhs, const Node& rhs) {
  return lhs.op == rhs.op && lhs.inputs == rhs.inputs && lhs.type == rhs.type &&
         lhs.attrs == rhs.attrs && lhs.value == rhs.value;
}

}  // namespace exercise
