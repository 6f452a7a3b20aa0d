// Calls the API with the user's access token, which stays on the server.
export default defineEventHandler(async (event) => {
  const auth0 = useAuth0(event);
  if ((await auth0.getSession()) === undefined) throw createError({ statusCode: 401 });
  const { accessToken } = await auth0.getAccessToken();
  const response = await fetch(`http://localhost:${useRuntimeConfig().apiPort}/api/messages`, {
    headers: { authorization: `Bearer ${accessToken}` },
  });
  if (!response.ok) throw createError({ statusCode: response.status });
  return response.json();
});
