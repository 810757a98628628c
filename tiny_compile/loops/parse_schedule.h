// Reading how a kernel is run.
#pragma once

#include "tiny_compile/base/text_cursor.h"
#include "tiny_compile/loops/schedule.h"

namespace tiny_compile {

// The part of parse_program's parser that reads schedules.
class ScheduleParser : protected TextCursor {
 protected:
  explicit ScheduleParser(std::string_view text) : TextCursor(text) {}

  int64_t bounded(int64_t low, int64_t high, const char* what);
  std::vector<SizeRange> ranges();  // n: 1..1024 and m: 1..64
  Schedule schedule();              // up to the end of the line

 private:
  Strategy strategy();
  void read_layouts(Schedule& schedule);
  Layout layout();
  Part part();
  Via via();
};

}  // namespace tiny_compile
