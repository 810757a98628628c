// What the compiler says of its work: TC_LOGS=fusion,cache prints to stderr,
// TC_DEBUG_DIR keeps texts.
#pragma once

#include <string>
#include <string_view>

namespace tiny_compile {

// Channels: graph passes fusion loops schedule memory code guards recompiles cache.
bool log_enabled(std::string_view channel);
void log(std::string_view channel, const std::string& text);

// Writes `text` to a file in the directory TC_DEBUG_DIR, where that is set; makes the
// directory, and says on stderr where it cannot write.
void keep_text(const std::string& file_name, const std::string& text);

}  // namespace tiny_compile
