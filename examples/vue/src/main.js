import { createAuth0 } from '@auth0/auth0-vue';
import { createApp } from 'vue';
import App from './App.vue';
import './style.css';

const { VITE_AUTH0_DOMAIN, VITE_AUTH0_CLIENT_ID, VITE_AUTH0_AUDIENCE } = import.meta.env;

createApp(App)
  .use(
    createAuth0({
      domain: VITE_AUTH0_DOMAIN,
      clientId: VITE_AUTH0_CLIENT_ID,
      authorizationParams: {
        redirect_uri: window.location.origin,
        audience: VITE_AUTH0_AUDIENCE,
        scope: 'openid profile email read:messages',
      },
      useRefreshTokens: true,
      cacheLocation: 'localstorage',
    }),
  )
  .mount('#root');
