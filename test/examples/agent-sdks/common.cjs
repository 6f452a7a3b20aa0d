// What the programs are told, and what they print.
const { CONNECTION, REFRESH_TOKEN, USER_ID, AUDIENCE, SCOPE } = process.env;

exports.vault = { connection: CONNECTION, scopes: [SCOPE], refreshToken: async () => REFRESH_TOKEN };
exports.approval = {
  userID: async () => USER_ID,
  bindingMessage: async () => 'Order 1',
  audience: AUDIENCE,
  scopes: ['orders:write'],
};

/** Prints what a tool has returned, or the code of what has interrupted it. */
exports.printed = async (name, call) => {
  const result = await call().catch((error) => error);
  const code = result?.code ?? result?.interrupts?.[0]?.value?.code;
  console.log(`${name}: ${code ?? result?.content ?? (result instanceof Error ? result.stack : result)}`);
};

/** The scopes of the access token that an approval gave. */
exports.scopesOf = ({ accessToken }) =>
  JSON.parse(Buffer.from(accessToken.split('.')[1], 'base64url').toString()).scope;
