// pbkdf2: the two functions of Node's crypto.
(module, load) => {
  const { pbkdf2, pbkdf2Sync } = load('crypto');
  module.exports = { pbkdf2, pbkdf2Sync };
};
