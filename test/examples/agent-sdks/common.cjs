// What the programs are told, and what they print.
const {
  ACCESS_TOKEN,
  API_CLIENT_ID,
  API_CLIENT_SECRET,
  AUDIENCE,
  CONNECTION,
  REFRESH_TOKEN,
  SCOPE,
  USER_ID,
} = process.env;

exports.vault = { connection: CONNECTION, scopes: [SCOPE], refreshToken: async () => REFRESH_TOKEN };
// The same by the API that the agent has called, for the access token that it received.
exports.apiClient = { clientId: API_CLIENT_ID, clientSecret: API_CLIENT_SECRET };
exports.apiVault = {
  connection: CONNECTION,
  scopes: [SCOPE],
  accessToken: async () => ACCESS_TOKEN,
  subjectTokenType: 'urn:ietf:params:oauth:token-type:access_token',
};
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
