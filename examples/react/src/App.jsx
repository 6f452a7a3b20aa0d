import { useAuth0 } from '@auth0/auth0-react';
import { useState } from 'react';

export function App() {
  const { isLoading, error, user, loginWithRedirect, logout, getAccessTokenSilently } = useAuth0();
  const [answer, setAnswer] = useState('');

  async function callApi() {
    const token = await getAccessTokenSilently();
    const response = await fetch('/api/messages', { headers: { authorization: `Bearer ${token}` } });
    setAnswer(response.ok ? (await response.json()).message : `The API answered ${response.status}`);
  }

  if (isLoading) return <p>Loading…</p>;
  return (
    <>
      <h1>React example</h1>
      {error && <p role="alert">{error.message}</p>}
      {user ? (
        <>
          <p>You are logged in as {user.email}.</p>
          <button onClick={callApi}>Call the API</button>
          <button onClick={() => logout({ logoutParams: { returnTo: window.location.origin } })}>
            Log out
          </button>
          <p role="status">{answer}</p>
        </>
      ) : (
        <button onClick={() => loginWithRedirect()}>Log in</button>
      )}
    </>
  );
}
