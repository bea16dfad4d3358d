#include "base/error.h"

#include <system_error>

namespace tricorn {

std::unexpected<Error> fail_os(std::string what, int error_number) {
  return fail(Fault::os, std::move(what) + ": " + std::generic_category().message(error_number));
}

}  // namespace tricorn
