${launch_default} {
  return ${name}(${arguments}, 0);
}
