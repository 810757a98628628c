// A measurement of a record (tests/bench/records, lessons/records) as a Markdown table.
#pragma once

#include <string>

namespace tiny_compile::lessons {

// `argument` is FILE.json#ROW FIELD, FIELD, ...: the rows whose "row" (or "name") is ROW, or all of
// them for '*'; columns are the fields, "tiny_compile.median_us" reaches inside. A line above the
// table says date, device, commit and command. Throws tc::Error where one of them is not there.
std::string render_record(const std::string& json, const std::string& argument);

}  // namespace tiny_compile::lessons
