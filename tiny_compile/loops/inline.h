// Computing a producer's value again in its consumer.
#pragma once

#include <string>

#include "tiny_compile/loops/group.h"

namespace tiny_compile {

// Evaluates producer's value of `buffer` wherever consumer reads it; consumer changes.
// `only_user` says that nobody else reads the buffer. Returns "" or says why not.
std::string inline_producer(const Program& program, Group& consumer, const Group& producer,
                            int buffer, bool only_user);

// The same whether or not it pays.
std::string inline_at_any_cost(const Program& program, Group& consumer, const Group& producer,
                               int buffer);

}  // namespace tiny_compile
