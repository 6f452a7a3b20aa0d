// The SDK's own route, /auth/login, does not request the scopes of an API.
export default defineEventHandler(async (event) => {
  const url = await useAuth0(event).startInteractiveLogin({
    authorizationParams: { scope: 'openid profile email read:messages' },
  });
  return sendRedirect(event, url.href);
});
