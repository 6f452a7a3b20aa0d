const { Auth0AI, getAccessTokenForConnection, getCIBACredentials } = require('@auth0/ai-langchain');
const { tool } = require('@langchain/core/tools');
const { z } = require('zod');
const { apiClient, apiVault, approval, printed, scopesOf, vault } = require('./common.cjs');

const auth0 = new Auth0AI();
const of = (run) => tool(run, { name: 'tool', description: 'A tool', schema: z.object({}) });
const call = (one) => () =>
  one.invoke({}, { configurable: { thread_id: 'one', tool_call_id: 'one' }, toolCall: { id: 'one' } });

(async () => {
  await printed(
    'vault',
    call(
      auth0.withTokenForConnection(
        vault,
        of(async () => getAccessTokenForConnection()),
      ),
    ),
  );
  await printed(
    'api',
    call(
      new Auth0AI({ auth0: apiClient }).withTokenForConnection(
        apiVault,
        of(async () => getAccessTokenForConnection()),
      ),
    ),
  );
  const more = { ...vault, scopes: ['files.write'] };
  await printed(
    'more',
    call(
      auth0.withTokenForConnection(
        more,
        of(async () => 'nothing'),
      ),
    ),
  );
  const asked = { ...approval, onAuthorizationRequest: 'block' };
  await printed(
    'approval',
    call(
      auth0.withAsyncUserConfirmation(
        asked,
        of(async () => scopesOf(getCIBACredentials())),
      ),
    ),
  );
})();
