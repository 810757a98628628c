// fails: two calls with one key and one draw are one value
#include "exercise.h"

namespace exercise {

bool is_one_value(const Node& lhs, const Node& rhs) {
  return lhs.op != Op::input && lhs.op != Op::philox && lhs.op == rhs.op &&
         lhs.inputs == rhs.inputs && lhs.type == rhs.type && lhs.attrs == rhs.attrs &&
         lhs.value == rhs.value;
}

}  // namespace exercise
