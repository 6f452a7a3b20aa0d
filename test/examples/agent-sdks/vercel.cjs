const {
  Auth0AI,
  getAccessTokenFromTokenVault,
  getAsyncAuthorizationCredentials,
  setAIContext,
} = require('@auth0/ai-vercel');
const { tool } = require('ai');
const { z } = require('zod');
const { apiClient, apiVault, approval, printed, scopesOf, vault } = require('./common.cjs');

const auth0 = new Auth0AI();
const of = (execute) => tool({ description: 'A tool', inputSchema: z.object({}), execute });
const call = (one) => () => one.execute({}, { toolCallId: 'one', messages: [] });

(async () => {
  setAIContext({ threadID: 'one' });
  await printed(
    'vault',
    call(
      auth0.withTokenVault(
        vault,
        of(async () => getAccessTokenFromTokenVault()),
      ),
    ),
  );
  await printed(
    'api',
    call(
      new Auth0AI({ auth0: apiClient }).withTokenVault(
        apiVault,
        of(async () => getAccessTokenFromTokenVault()),
      ),
    ),
  );
  const more = { ...vault, scopes: ['files.write'] };
  await printed(
    'more',
    call(
      auth0.withTokenVault(
        more,
        of(async () => 'nothing'),
      ),
    ),
  );
  const asked = { ...approval, onAuthorizationRequest: 'block' };
  await printed(
    'approval',
    call(
      auth0.withAsyncAuthorization(
        asked,
        of(async () => scopesOf(getAsyncAuthorizationCredentials())),
      ),
    ),
  );
})();
