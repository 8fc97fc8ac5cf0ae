import{Fa as i,b as o,u as r,w as m}from"./shell.js";var p=document.getElementById("app");p&&m().finally(()=>o(r(i,{}),p));
