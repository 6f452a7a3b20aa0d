// Gatehouse, and the application in config/tenant.yaml.
export const environment = {
  domain: 'localhost:3000',
  clientId: 'angular',
  audience: 'https://api.example.test/',
};
