# tricorn_libraries: the system libraries of the core, by pkg-config.
find_package(PkgConfig)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "pkg-config is missing (Debian: apt-get install pkg-config)")
endif()

add_library(tricorn_libraries INTERFACE)

function(need module minimum package)
  pkg_check_modules(${module} QUIET IMPORTED_TARGET ${module}>=${minimum})
  if(NOT ${module}_FOUND)
    message(FATAL_ERROR "${module} ${minimum} or newer is missing (Debian: apt-get install ${package})")
  endif()
  target_link_libraries(tricorn_libraries INTERFACE PkgConfig::${module})
endfunction()

need(libuv 1.44 libuv1-dev)
need(libnghttp2 1.52 libnghttp2-dev)
need(openssl 3.0 libssl-dev)
need(zlib 1.2 zlib1g-dev)
