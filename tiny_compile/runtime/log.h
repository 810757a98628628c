// What the compiler says of its work: TC_LOGS=fusion,cache prints to stderr, TC_DEBUG_DIR keeps
// texts, errors quote them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tiny_compile {

// Channels: graph passes fusion loops schedule memory code guards recompiles cache.
bool log_enabled(std::string_view channel);
void log(std::string_view channel, const std::string& text);

// Writes `text` to a file in the directory TC_DEBUG_DIR, where that is set; makes the
// directory, and says on stderr where it cannot write.
void keep_text(const std::string& file_name, const std::string& text);

// Lines first..last of a source, as far as it has them; they count from 1, and one is marked:
// "  11 | float b;\n> 12 | b = nothing;\n". Nothing is marked by 0.
std::string numbered_lines(const std::string& source, int64_t first, int64_t last,
                           int64_t marked = 0);

}  // namespace tiny_compile
