// What the compiler says of its work: TC_LOGS=fusion,cache prints to stderr,
// TC_DEBUG_DIR keeps texts.
#pragma once

#include <string>
#include <string_view>

namespace tiny_compile {

// Channels: graph passes fusion loops schedule memory code guards recompiles cache autotune.
bool log_enabled(std::string_view channel);
void log(std::string_view channel, const std::string& text);

// Writes `text` to a file in the directory TC_DEBUG_DIR, where that is set; makes the
// directory, and says on stderr where it cannot write.
void keep_text(const std::string& file_name, std::string_view text);
void keep_line(const std::string& file_name, std::string_view line);   // at the file's end
void keep_once(const std::string& file_name, std::string_view bytes);  // unless it is there

// What the names of a graph's texts begin with, "main_3fa2c1": two of one name keep theirs apart.
std::string kept_name(const std::string& name, const std::string& text);

}  // namespace tiny_compile
