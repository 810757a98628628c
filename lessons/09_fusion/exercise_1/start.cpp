#include "exercise.h"

namespace exercise {

bool lies_between(const Program& program, int producer, int consumer) {
  // TODO: is there a way from the producer to the consumer through another kernel?
  (void)program, (void)producer, (void)consumer;
  return false;
}

}  // namespace exercise
