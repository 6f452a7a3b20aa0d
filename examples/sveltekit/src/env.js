// The variables of .env that the application may read, on the server only.
import { defineEnvVars } from '@sveltejs/kit/env';

export const variables = defineEnvVars({
  PORT: {},
  API_PORT: {},
  AUTH0_DOMAIN: {},
  AUTH0_CLIENT_ID: {},
  AUTH0_CLIENT_SECRET: {},
  AUTH0_AUDIENCE: {},
  SESSION_SECRET: {},
});
