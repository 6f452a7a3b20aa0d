import { useState } from 'react';
import { Button, SafeAreaView, Text } from 'react-native';
import { Auth0Provider, useAuth0 } from 'react-native-auth0';

// Where Gatehouse and the API are, as the device sees them.
const DOMAIN = 'localhost:3000';
const API = 'http://localhost:4001';
const SCHEME = 'example.auth0';

export default function App() {
  return (
    <Auth0Provider domain={DOMAIN} clientId="react-native">
      <Home />
    </Auth0Provider>
  );
}

function Home() {
  const { user, error, isLoading, authorize, clearSession, getCredentials } = useAuth0();
  const [answer, setAnswer] = useState('');

  const logIn = () =>
    authorize(
      { audience: 'https://api.example.test/', scope: 'openid profile email offline_access read:messages' },
      { customScheme: SCHEME },
    );
  const logOut = () => clearSession({}, { customScheme: SCHEME });

  async function callApi() {
    const { accessToken } = await getCredentials();
    const response = await fetch(`${API}/api/messages`, {
      headers: { authorization: `Bearer ${accessToken}` },
    });
    setAnswer(response.ok ? (await response.json()).message : `The API answered ${response.status}`);
  }

  if (isLoading) return <Text>Loading…</Text>;
  return (
    <SafeAreaView>
      <Text>React Native example</Text>
      {error && <Text>{error.message}</Text>}
      {user ? (
        <>
          <Text>You are logged in as {user.email}.</Text>
          <Button title="Call the API" onPress={callApi} />
          <Button title="Log out" onPress={logOut} />
          <Text>{answer}</Text>
        </>
      ) : (
        <Button title="Log in" onPress={logIn} />
      )}
    </SafeAreaView>
  );
}
