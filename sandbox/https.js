// https: as http, with another scheme.
(module, load) => {
  module.exports = load('http').over('https:');
};
