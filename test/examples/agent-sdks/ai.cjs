const { AsyncAuthorizerBase, getAsyncAuthorizationCredentials } = require('@auth0/ai/AsyncAuthorization');
const { MemoryStore } = require('@auth0/ai/stores');
const { getAccessTokenFromTokenVault, TokenVaultAuthorizerBase } = require('@auth0/ai/TokenVault');
const { apiClient, apiVault, approval, printed, scopesOf, vault } = require('./common.cjs');

const store = new MemoryStore();
const context = () => ({ threadID: 'one', toolCallID: 'one', toolName: 'tool' });

(async () => {
  const files = new TokenVaultAuthorizerBase({}, { ...vault, store });
  await printed(
    'vault',
    files.protect(context, async () => getAccessTokenFromTokenVault()),
  );
  const api = new TokenVaultAuthorizerBase(apiClient, { ...apiVault, store });
  await printed(
    'api',
    api.protect(context, async () => getAccessTokenFromTokenVault()),
  );
  const more = new TokenVaultAuthorizerBase({}, { ...vault, scopes: ['files.write'], store });
  await printed(
    'more',
    more.protect(context, async () => 'nothing'),
  );
  const order = new AsyncAuthorizerBase({}, { ...approval, onAuthorizationRequest: 'block', store });
  await printed(
    'approval',
    order.protect(context, async () => scopesOf(getAsyncAuthorizationCredentials())),
  );
})();
