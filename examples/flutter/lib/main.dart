import 'dart:convert';

import 'package:auth0_flutter/auth0_flutter.dart';
import 'package:flutter/material.dart';
import 'package:http/http.dart' as http;

// Where Gatehouse and the API are, as the device sees them.
const domain = 'localhost:3000';
const api = 'http://localhost:4001';
const scheme = 'example';

void main() => runApp(const MaterialApp(home: Home()));

class Home extends StatefulWidget {
  const Home({super.key});

  @override
  State<Home> createState() => _HomeState();
}

class _HomeState extends State<Home> {
  final auth0 = Auth0(domain, 'flutter');
  Credentials? credentials;
  String message = '';

  Future<void> logIn() => shown(() async {
        credentials = await auth0.webAuthentication(scheme: scheme).login(
          audience: 'https://api.example.test/',
          scopes: {'openid', 'profile', 'email', 'offline_access', 'read:messages'},
        );
        return '';
      });

  Future<void> callApi() => shown(() async {
        final token = (await auth0.credentialsManager.credentials()).accessToken;
        final response = await http.get(Uri.parse('$api/api/messages'), headers: {'authorization': 'Bearer $token'});
        if (response.statusCode != 200) return 'The API answered ${response.statusCode}';
        return jsonDecode(response.body)['message'] as String;
      });

  Future<void> logOut() => shown(() async {
        await auth0.webAuthentication(scheme: scheme).logout();
        credentials = null;
        return '';
      });

  /// Does something and shows its message, or why it failed.
  Future<void> shown(Future<String> Function() action) async {
    var text = '';
    try {
      text = await action();
    } on WebAuthenticationException catch (error) {
      text = error.message;
    }
    if (mounted) setState(() => message = text);
  }

  @override
  Widget build(BuildContext context) {
    final user = credentials?.user;
    return Scaffold(
      appBar: AppBar(title: const Text('Flutter example')),
      body: Padding(
        padding: const EdgeInsets.all(16),
        child: Column(
          crossAxisAlignment: CrossAxisAlignment.start,
          children: [
            if (user == null)
              ElevatedButton(onPressed: logIn, child: const Text('Log in'))
            else ...[
              Text('You are logged in as ${user.email}.'),
              ElevatedButton(onPressed: callApi, child: const Text('Call the API')),
              ElevatedButton(onPressed: logOut, child: const Text('Log out')),
            ],
            Text(message),
          ],
        ),
      ),
    );
  }
}
