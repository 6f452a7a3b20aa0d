// https, as http but for the scheme.
(module, load) => {
  module.exports = load('http').over('https:');
};
