// pbkdf2: the module's two functions, which are those of Node's crypto.
(module, load) => {
  const { pbkdf2, pbkdf2Sync } = load('crypto');
  module.exports = { pbkdf2, pbkdf2Sync };
};
