// Do two threads race for an element? Two barriers apart they do not.
#pragma once

#include <cstdint>

namespace tiny_compile {

// The last accesses to a shared element, each in a stretch between two barriers of those that share
// it. Both say whether the thread may: no other writes what it reads, none reads or writes what it
// writes.
struct Access {
  static constexpr int kAdders = -2;
  int writer = -1, reader = -1;     // threads; -2: several have read, or added
  int64_t written = -1, read = -1;  // stretches

  bool reads(int thread, int64_t stretch) {
    if (written == stretch && writer != thread) return false;
    reader = read == stretch && reader != thread ? -2 : thread;
    read = stretch;
    return true;
  }
  bool writes(int thread, int64_t stretch) {
    if ((written == stretch && writer != thread) || (read == stretch && reader != thread))
      return false;
    writer = thread;
    written = stretch;
    return true;
  }
  // Where nothing else is done in the stretch.
  bool adds(int64_t stretch) {
    if ((written == stretch && writer != kAdders) || read == stretch) return false;
    writer = kAdders;
    written = stretch;
    return true;
  }
};

}  // namespace tiny_compile
