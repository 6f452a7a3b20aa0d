/** The modules that scripts may require without any package: small implementations in `sandbox/`. */
export const BUILT_IN_MODULES = [
  'axios',
  'bcrypt',
  'buffer',
  'crypto',
  'http',
  'https',
  'jose',
  'jsonwebtoken',
  'lodash',
  'node-fetch',
  'pbkdf2',
  'querystring',
  'request',
  'url',
  'util',
  'uuid',
];
